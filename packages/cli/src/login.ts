import { createInterface } from "node:readline"
import { Writable } from "node:stream"
import { SeatrialClient } from "@seatrial/client"
import { Config, Console, Effect, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { withCommandErrors } from "./apiErrors.ts"
import { CommandError } from "./CommandError.ts"
import { jsonFlag, textFlag } from "./listing.ts"
import { printRecord, printRows } from "./print.ts"
import { chooseProfile, readProfiles, writeProfiles } from "./profiles.ts"

const ProfileName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, { message: "Expected 1 to 63 letters, digits, dots, hyphens and underscores" })
)
const profileFlag = Flag.String("profile").pipe(Flag.withDescription("The profile's name"), Flag.withSchema(ProfileName), Flag.withDefault("default"))
const profileArgument = Argument.String("profile").pipe(Argument.withDescription("The profile's name"))

/** Reads a line from standard input without echo. */
const readSecret = (question: string) =>
  Effect.callback<string>((resume) => {
    const isTerminal = process.stdin.isTTY === true
    if (isTerminal) process.stderr.write(question)
    const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
    const lines = createInterface({ input: process.stdin, output: silent, terminal: isTerminal })
    let line = ""
    lines.once("line", (text) => {
      line = text.trim()
      lines.close()
    })
    lines.once("SIGINT", () => lines.close())
    lines.once("close", () => {
      if (isTerminal) process.stderr.write("\n")
      resume(Effect.succeed(line))
    })
    return Effect.sync(() => lines.close())
  })

const isWebAddress = (text: string) => /^https?:\/\//i.test(text) && URL.canParse(text)

/** Checks that the API accepts the key. A key without the scope of the call is accepted. */
const checkKey = Effect.fnUntraced(function* (address: string, apiKey: Redacted.Redacted) {
  const api = yield* SeatrialClient.make({ address, apiKey, retry: { attempts: 2, totalTime: 20_000 } }).pipe(
    Effect.mapError(({ message }) => new CommandError({ message, exitCode: 2 }))
  )
  yield* api.models.list().pipe(
    Effect.asVoid,
    Effect.catchTag("MissingScope", () => Effect.void),
    withCommandErrors
  )
})

export const loginCommand = Command.make(
  "login",
  {
    address: Argument.String("address").pipe(Argument.withDescription("The address of the API, for example https://seatrial.example.com")),
    gateway: textFlag("gateway", "The address of the gateway, if it differs from the API's"),
    profile: profileFlag
  },
  Effect.fn(function* ({ address, gateway, profile }) {
    const base = address.replace(/\/+$/, "")
    if (!isWebAddress(base))
      return yield* new CommandError({ message: `${address} is not an address of the API. It must start with https:// or http://.`, exitCode: 2 })
    const fromEnvironment = yield* Config.Redacted("SEATRIAL_API_KEY").pipe(Config.option)
    const key = Option.isSome(fromEnvironment) ? fromEnvironment.value : Redacted.make(yield* readSecret("API key: "))
    if (Redacted.value(key) === "") return yield* new CommandError({ message: "The API key is empty. Nothing was stored.", exitCode: 2 })
    yield* checkKey(base, key)
    const before = yield* readProfiles()
    const added = {
      address: base,
      api_key: Redacted.value(key),
      ...(Option.isSome(gateway) ? { gateway: gateway.value.replace(/\/+$/, "") } : {})
    }
    yield* writeProfiles({ current: profile, profiles: { ...before.profiles, [profile]: added } })
    yield* Console.error(`Logged in to ${base}. The current profile is now ${profile}.`)
  })
).pipe(
  Command.withDescription(
    "Stores an address and an API key as a profile and makes it the current profile. The key is read from SEATRIAL_API_KEY or standard input."
  ),
  Command.withExamples([{ command: "seatrial login https://seatrial.example.com --profile work", description: "Log in and name the profile work" }])
)

export const logoutCommand = Command.make(
  "logout",
  { profile: textFlag("profile", "The profile's name (default: the current profile)") },
  Effect.fn(function* ({ profile }) {
    const before = yield* readProfiles()
    const name = Option.getOrElse(profile, () => before.current)
    if (name === null) return yield* new CommandError({ message: "There is no current profile. Specify one with --profile." })
    yield* chooseProfile(before, Option.some(name))
    const { [name]: _, ...profiles } = before.profiles
    yield* writeProfiles({ current: before.current === name ? null : before.current, profiles })
    yield* Console.error(`Removed the profile ${name} and its key from this machine. The key stays valid until it is revoked.`)
  })
).pipe(Command.withDescription("Removes a profile and its key from this machine."))

const list = Command.make(
  "list",
  { json: jsonFlag },
  Effect.fn(function* ({ json }) {
    const { current, profiles } = yield* readProfiles()
    yield* printRows(
      json,
      Object.entries(profiles).map(([name, { address, gateway = null }]) => ({ name, current: name === current, address, gateway }))
    )
  })
).pipe(Command.withDescription("Lists the profiles, without their keys."))

const use = Command.make(
  "use",
  { profile: profileArgument, json: jsonFlag },
  Effect.fn(function* ({ json, profile }) {
    const before = yield* readProfiles()
    const chosen = yield* chooseProfile(before, Option.some(profile))
    yield* writeProfiles({ ...before, current: profile })
    yield* printRecord(json, { name: profile, address: Option.getOrThrow(chosen).address })
  })
).pipe(Command.withDescription("Makes a profile the current profile."))

export const profilesCommand = Command.make("profiles").pipe(
  Command.withDescription("Installations that this machine has logged in to. SEATRIAL_PROFILE selects another profile for one command."),
  Command.withSubcommands([list, use])
)
