"""fairseq's own commands with the plugin: in real processes where a process matters."""
