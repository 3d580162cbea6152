"""Two regions of DynamoDB, on an emulator: ministack, not AWS."""
