import { createInterface } from "node:readline"
import { Effect } from "effect"
import { Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"

export const yesFlag = Flag.Boolean("yes").pipe(Flag.withDescription("Do it without asking"), Flag.withDefault(false))

/** What was typed; undefined at the end of input, null at an interrupt. The question goes to standard error, so that standard output holds the result and nothing else. */
const ask = (question: string) =>
  Effect.callback<string | undefined | null>((resume) => {
    const lines = createInterface({ input: process.stdin, output: process.stderr })
    // Without a listener readline would take the interrupt and go on waiting.
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

/** Goes on where `--yes` is given or a person at the terminal types "yes"; fails otherwise, with exit code 2 where there is nobody to ask. */
export const confirm = Effect.fnUntraced(function* (yes: boolean, what: string): Effect.fn.Return<void, CommandError> {
  if (yes) return
  if (!process.stdin.isTTY) return yield* new CommandError({ message: `${what} Nothing was done: say so with --yes.`, exitCode: 2 })
  const answer = yield* ask(`${what} Type "yes" to go on: `)
  if (answer === null) return yield* new CommandError({ message: "Nothing was done.", exitCode: 130 })
  if (answer?.trim().toLowerCase() !== "yes") return yield* new CommandError({ message: "Nothing was done." })
})
