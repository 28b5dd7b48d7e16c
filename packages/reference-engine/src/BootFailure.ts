/** The engine cannot start. The message becomes the last line of the log, and the exit code is 1. */
export class BootFailure extends Error {
  override readonly name = "BootFailure"
}
