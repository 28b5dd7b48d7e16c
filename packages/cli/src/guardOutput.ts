/** Exit code of a failed write to standard output: 141, as shells report SIGPIPE, if the reader has closed the pipe. */
export const outputExitCode = (fault: NodeJS.ErrnoException): number => (fault.code === "EPIPE" ? 141 : 1)

let isGuarded = false

/**
 * Makes the command fail if a result cannot be written to standard output. It prints no message if the reader has
 * closed the pipe.
 */
export const guardOutput = (): void => {
  if (isGuarded) return
  isGuarded = true
  let isReported = false
  const report = (fault: NodeJS.ErrnoException) => {
    if (!isReported && fault.code !== "EPIPE") process.stderr.write(`The result could not be written: ${fault.message}.\n`)
    isReported = true
  }
  process.stdout.on("error", (fault) => {
    report(fault)
    process.exit(outputExitCode(fault))
  })
  // The command can end before the stream emits the error.
  process.on("exit", (code) => {
    const fault = process.stdout.errored
    if (fault === null) return
    report(fault)
    if (code === 0) process.exitCode = outputExitCode(fault)
  })
}
