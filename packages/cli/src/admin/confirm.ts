import { createInterface } from "node:readline"
import { Effect } from "effect"
import { Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"

export const yesFlag = Flag.Boolean("yes").pipe(Flag.withDescription("Skip the confirmation"), Flag.withDefault(false))

/**
 * Asks a question on standard error, so that standard output contains only results. Undefined at the end of input, null
 * on an interrupt.
 */
const ask = (question: string) =>
  Effect.callback<string | undefined | null>((resume) => {
    const lines = createInterface({ input: process.stdin, output: process.stderr })
    // Without a listener, readline would ignore the interrupt and keep waiting.
    lines.once("SIGINT", () => {
      resume(Effect.succeed(null))
      lines.close()
    })
    lines.once("close", () => resume(Effect.succeed(undefined)))
    lines.question(question, (answer) => {
      resume(Effect.succeed(answer))
      lines.close()
    })
    return Effect.sync(() => lines.close())
  })

/**
 * Succeeds if `--yes` is set or the user types "yes". Otherwise fails, with exit code 2 if standard input is not a
 * terminal.
 */
export const confirm = Effect.fnUntraced(function* (yes: boolean, what: string): Effect.fn.Return<void, CommandError> {
  if (yes) return
  if (!process.stdin.isTTY) return yield* new CommandError({ message: `${what} Nothing was changed. Confirm with --yes.`, exitCode: 2 })
  const answer = yield* ask(`${what} Type "yes" to continue: `)
  if (answer === null) return yield* new CommandError({ message: "Nothing was changed.", exitCode: 130 })
  if (answer?.trim().toLowerCase() !== "yes") return yield* new CommandError({ message: "Nothing was changed." })
})
