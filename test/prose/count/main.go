package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: count FOLDER, with the folder of the repository")
		os.Exit(2)
	}
	t, err := countFolders(os.Args[1], "facade", "reconcilers", "webhooks", "peering", "storage")
	if err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
	fmt.Print(t)
}
