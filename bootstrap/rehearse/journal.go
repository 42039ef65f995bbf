package rehearse

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"seckill/application"
)

// writeJournal writes what each buyer was told at last, one application.JournalEntry a line,
// and has it on the disk before it returns.
func (r *rehearsal) writeJournal() error {
	if r.cfg.JournalPath == "" {
		return nil
	}
	f, err := os.OpenFile(r.cfg.JournalPath, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	w := bufio.NewWriter(f)
	err = r.writeEntries(json.NewEncoder(w))
	if err := errors.Join(err, w.Flush(), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func (r *rehearsal) writeEntries(lines *json.Encoder) error {
	answers := map[kind]application.Answer{accepted: application.AnswerAccepted,
		refused: application.AnswerRefused, unknown: application.AnswerUnknown}
	for i, k := range r.held {
		if k == notAsked {
			continue
		}
		entry := application.JournalEntry{Product: r.crowd.product(i), User: r.crowd.user(i),
			Token: r.crowd.token(i), Quantity: 1, Answer: answers[k]}
		if err := lines.Encode(entry); err != nil {
			return err
		}
	}
	return nil
}
