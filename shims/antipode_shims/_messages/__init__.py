"""What the shims of brokers share: names of publications, headers, receipts."""
