"""Read and write the files of other evaluation tools. Their packages are not needed."""
