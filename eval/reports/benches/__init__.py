"""What a report shows of the records of `fineprint bench`."""
