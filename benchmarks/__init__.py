"""The measurements of docs/performance.md, each one command, and the generated logs they run on."""
