// Package fakeredis is a Redis for tests and simulations: in memory, deterministic, without goroutines,
// sockets or a clock of its own. It runs Lua scripts. It replies as Redis 7.0 does, including errors; its
// tests compare it with a real Redis.
//
// It lacks databases other than 0, transactions, RESP3 with its HELLO, commands that are not in its
// command table, options of sorted sets that Latchkey does not use, and in Lua cjson, cmsgpack, struct,
// bit and random numbers.
//
// Three things differ in scripts. A number that .. or tostring turns into a text is not rounded to 14
// digits. A text in a calculation is an octal number if it begins with 0. Lua's own errors have other
// texts than in Redis.
//
// A script must not replace a function of Lua: that would affect all later scripts.
package fakeredis
