"""The measurements that the README quotes, each one command, and the generated logs they run on."""
