package main

// pages is where the pages are: whoever has installed the command by go install has no file of the repository.
const pages = "https://github.com/a2139e8d/latchkey/blob/main/"

// rightsPage has the rights that this program needs.
const rightsPage = pages + "cmd/latchkey/README.md#rights"
