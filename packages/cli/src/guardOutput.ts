/** Exit code of what could not be printed; of a reader that has gone, that which the shell gives for SIGPIPE. */
export const outputExitCode = (fault: NodeJS.ErrnoException): number => (fault.code === "EPIPE" ? 141 : 1)

let guarded = false

/** From now on a result that cannot be written to standard output ends the command with a failure; quietly where whoever read it has gone. */
export const guardOutput = (): void => {
  if (guarded) return
  guarded = true
  let told = false
  const tell = (fault: NodeJS.ErrnoException) => {
    if (!told && fault.code !== "EPIPE") process.stderr.write(`The result could not be written: ${fault.message}.\n`)
    told = true
  }
  process.stdout.on("error", (fault) => {
    tell(fault)
    process.exit(outputExitCode(fault))
  })
  // A command may be over before the stream has told.
  process.on("exit", (code) => {
    const fault = process.stdout.errored
    if (fault === null) return
    tell(fault)
    if (code === 0) process.exitCode = outputExitCode(fault)
  })
}
