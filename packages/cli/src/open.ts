import { spawn } from "node:child_process"
import { Console, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { Access } from "./apiAccess.ts"

/** Starts the browser of the desktop. False if there is none. */
const openBrowser = (address: string) =>
  Effect.callback<boolean>((resume) => {
    const child = spawn(process.platform === "darwin" ? "open" : "xdg-open", [address], { stdio: "ignore", detached: true })
    child.once("error", () => resume(Effect.succeed(false)))
    child.once("spawn", () => {
      child.unref()
      resume(Effect.succeed(true))
    })
  })

export const openCommand = Command.make(
  "open",
  { print: Flag.Boolean("print").pipe(Flag.withDescription("Only print the address"), Flag.withDefault(false)) },
  Effect.fn(function* ({ print }) {
    const { address } = yield* Access
    const page = `${address}/docs`
    yield* Console.log(page)
    if (!print && process.stdout.isTTY === true && !(yield* openBrowser(page)))
      yield* Console.error("No browser could be started. Open the address above yourself.")
  })
).pipe(Command.withDescription("Opens the API documentation of this installation and prints its address."))
