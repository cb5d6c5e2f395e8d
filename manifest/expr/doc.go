// Package expr compiles and evaluates the conditions of a contract: CEL expressions that say whether an effect is
// present, whether it is absent, and which error answers are refusals.
//
// # Truth
//
// A condition is true only if it evaluates to true. One that fails to evaluate (a member is missing, there is no
// response, a limit is exceeded) is not true, nothing more: [Condition.Eval] says why, as evidence. So a condition and
// its negation can both be not true, and absence needs a proof of its own.
//
// # Variables
//
//	response   what the owner answered; there is none when it answered with an error
//	error      {code, message}, both text; null when the owner answered without an error
//	args       the arguments of the call
//	result     the acknowledged result of the step; null when there is none
//	tx         {id}: the transaction
//
// A refuse condition knows error, args and tx only.
//
// # Numbers
//
// Two numbers of JSON data are equal exactly if they have the same value: 1, 1.0 and 10e-1 are equal, and no digit is
// ever rounded away. Integers of 64 bits are CEL's int and uint; a decimal that is the shortest text of a double (0.1,
// 1e300) is that double; every other number (2^64, 0.1000000000000000000001) is a value of its own, which can be compared
// by ==, != and in with everything, by < and > where it stands on the left, and turned into text by string(…).
// [number] makes such a value from text: response.total == number("18446744073709551616"). Decimal literals that CEL
// would round, or compare with rounded integers, do not compile. A number never equals a text: 5 == "5" is false.
//
// # Limits
//
// A source has at most [MaxSource] bytes. Evaluation ends, as not true, after a fixed cost and after one second.
package expr
