package application

import "seckill/application/port"

// Rules lists the table of an examination.
func Rules() map[string][]port.ReadingName {
	names := map[string][]port.ReadingName{}
	for key := range rules {
		names[key.part] = append(names[key.part], key.name)
	}
	return names
}
