// Command count counts names, comments and reasons of test cases in the Go files of the product: the folders facade
// (without the test kit and package rules), reconcilers, webhooks, peering and storage, without testdata and generated
// files.
//
//	go run ./count ../..
//
// The rules:
//
//   - A word of a function's name begins with a capital letter after a small one: removeAPIKey has two, as APIKey is
//     one. Methods count like functions. Tests do not count.
//   - A line that contains a part of a comment is a comment line. A line with any other token is a code line. The
//     density is the number of comment lines for each code line.
//   - `what …` counts the word what before a verb or a pronoun, and `tells/told` the words `tell`, `tells` and
//     `told`, in comments.
//   - A doubled type is an exported type name that two or more packages declare. Aliases, and the names Options,
//     Option, Reader, Writer, Source and Server do not count.
//   - A reason is the string in a field named reason of a test case. Short ones have four words or fewer.
package main
