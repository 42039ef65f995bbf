// Package contract holds one suite for each group of ports. Every adapter of a port runs it, the
// real one and its stand-in alike; a fixture says how to make one and names the differences that an
// adapter may honestly have.
package contract
