"""Two regions of S3: on an emulator, ministack, not AWS, or on SeaweedFS, a real server."""
