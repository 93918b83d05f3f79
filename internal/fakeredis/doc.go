// Package redis is a Redis for simulations: in memory, without goroutines, sockets or a
// clock of its own, and deterministic. It runs Lua scripts, and answers as Redis 7.0
// does, also where it refuses; the tests ask a real one the same.
//
// What it lacks: databases other than 0, transactions, RESP3 with its HELLO, what its
// command table does not list, the options of sorted sets that Latchkey does not use,
// and in Lua cjson, cmsgpack, struct, bit and random numbers. In a script, a number that
// .. or tostring makes a text is not rounded to 14 digits, and a text in a calculation is
// an octal number if it begins with 0. What Lua itself says of an error in a script is
// another text than Redis's. A script may replace a function of Lua for all that follow;
// it must not.
package fakeredis
