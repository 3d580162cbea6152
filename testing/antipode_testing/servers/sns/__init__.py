"""SNS in one region and SQS in another, on an emulator: ministack, not AWS."""
