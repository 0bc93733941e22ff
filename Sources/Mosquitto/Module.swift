// Replaced by the module's first file.
