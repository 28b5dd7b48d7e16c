import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Config, Effect, Option, Schema } from "effect"
import { CommandError } from "./CommandError.ts"

/** An installation of Seatrial and a key for it. */
const Profile = Schema.Struct({
  address: Schema.String,
  /** The address of the gateway, if it differs from the API's. */
  gateway: Schema.optionalKey(Schema.String),
  api_key: Schema.String
})
export type Profile = typeof Profile.Type

const Profiles = Schema.Struct({ current: Schema.NullOr(Schema.String), profiles: Schema.Record(Schema.String, Profile) })
export type Profiles = typeof Profiles.Type
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Profiles))

const none: Profiles = { current: null, profiles: {} }

/** The profiles file, readable only by its owner. None if neither XDG_CONFIG_HOME nor HOME is set. */
const profilesFile = Effect.gen(function* () {
  const { configuration, home } = yield* Config.all({
    configuration: Config.String("XDG_CONFIG_HOME").pipe(Config.option),
    home: Config.String("HOME").pipe(Config.option)
  })
  const folder = Option.orElse(
    Option.filter(configuration, (path) => path !== ""),
    () => Option.map(home, (path) => join(path, ".config"))
  )
  return Option.map(folder, (path) => join(path, "seatrial", "profiles.json"))
}).pipe(Effect.orDie)

/** Fails if the file exists but is invalid, so that it is never overwritten by mistake. */
export const readProfiles = Effect.fnUntraced(function* (): Effect.fn.Return<Profiles, CommandError> {
  const path = yield* profilesFile
  const text = Option.flatMap(
    path,
    Option.liftThrowable((file: string) => readFileSync(file, "utf8"))
  )
  if (Option.isNone(text)) return none
  return yield* Effect.fromOption(decode(text.value)).pipe(
    Effect.mapError(
      () => new CommandError({ message: `${Option.getOrThrow(path)} is not a valid profiles file. Correct it, or remove it and log in again.`, exitCode: 2 })
    )
  )
})

export const writeProfiles = Effect.fnUntraced(function* (profiles: Profiles): Effect.fn.Return<void, CommandError> {
  const file = yield* profilesFile
  if (Option.isNone(file)) return yield* new CommandError({ message: "There is no folder for profiles. Set HOME or XDG_CONFIG_HOME.", exitCode: 2 })
  const path = file.value
  yield* Effect.try({
    try: () => {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      writeFileSync(`${path}.new`, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600, flush: true })
      chmodSync(`${path}.new`, 0o600)
      renameSync(`${path}.new`, path)
    },
    catch: () => new CommandError({ message: `${path} cannot be written. Set XDG_CONFIG_HOME to a writable folder.` })
  })
})

/** The profile with that name, or the current profile if no name is set. Fails if the name has no profile. */
export const chooseProfile = ({ current, profiles }: Profiles, name: Option.Option<string>): Effect.Effect<Option.Option<Profile>, CommandError> => {
  if (Option.isSome(name)) {
    return Effect.fromOption(Option.fromUndefinedOr(profiles[name.value])).pipe(
      Effect.map(Option.some),
      Effect.mapError(() => new CommandError({ message: `There is no profile ${name.value}. \`seatrial profiles list\` lists the profiles.`, exitCode: 2 }))
    )
  }
  return Effect.succeed(Option.fromUndefinedOr(current === null ? undefined : profiles[current]))
}
