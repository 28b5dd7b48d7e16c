import { SeatrialClient, type SeatrialClientOptions } from "@seatrial/client"
import { Config, Context, Effect, Layer, Option, Redacted } from "effect"
import { CommandError } from "./CommandError.ts"
import { endedWithoutStopping, readLocalState } from "./localState.ts"
import { chooseProfile, readProfiles } from "./profiles.ts"

export interface Named {
  readonly address: Option.Option<string>
  readonly gateway?: Option.Option<string>
  readonly key: Option.Option<Redacted.Redacted>
}

/** An API, the gateway before its models, and a key to both. */
export interface ChosenAccess {
  readonly address: Option.Option<string>
  /** The API's address, if the gateway has none of its own. */
  readonly gateway: Option.Option<string>
  readonly key: Named["key"]
}

/** Where a system is found, and the key to it. */
interface Known {
  readonly address: string
  readonly gateway?: string
  readonly api_key: string
}

/**
 * Which API is asked, and as whom: what the environment names, else the profile that it names, else the system started in this folder, else the current profile. A stored key goes
 * only to the address that it is stored with.
 */
export const chooseAccess = (
  { address, gateway = Option.none(), key }: Named,
  local: Option.Option<Known>,
  profile: { readonly named: Option.Option<Known>; readonly current: Option.Option<Known> } = { named: Option.none(), current: Option.none() }
): ChosenAccess => {
  const known = Option.firstSomeOf([profile.named, local, profile.current])
  const chosen = Option.orElse(address, () => Option.map(known, (state) => state.address))
  const own = Option.firstSomeOf([profile.named, local, profile.current].map(Option.filter((state) => Option.contains(chosen, state.address))))
  const ownGateway = Option.flatMap(own, (state) => Option.fromUndefinedOr(state.gateway))
  return {
    address: chosen,
    gateway: Option.firstSomeOf([gateway, ownGateway, chosen]),
    key: Option.orElse(key, () => Option.map(own, (state) => Redacted.make(state.api_key)))
  }
}

/** The addresses and the key that this command uses. */
export class Access extends Context.Service<Access, { readonly address: string; readonly gateway: string; readonly key: Option.Option<Redacted.Redacted> }>()(
  "seatrial/cli/Access"
) {}

// Somebody waits at a terminal: what does not answer is told within seconds. Waiting for a run has a patience of its own.
const retry = { attempts: 4, totalTime: 60_000 }

const notRunning =
  "Seatrial is not running in this folder: it ended without being stopped. Start it with `npm start`, which goes on where it was, or set SEATRIAL_ADDRESS and SEATRIAL_API_KEY."

const access = Effect.fnUntraced(function* (needsKey: boolean) {
  const named = yield* Config.all({
    address: Config.String("SEATRIAL_ADDRESS").pipe(Config.option),
    gateway: Config.String("SEATRIAL_GATEWAY_ADDRESS").pipe(Config.option),
    key: Config.Redacted("SEATRIAL_API_KEY").pipe(Config.option),
    profile: Config.String("SEATRIAL_PROFILE").pipe(Config.option)
  })
  const profiles = yield* readProfiles()
  const current = yield* chooseProfile(profiles, Option.none())
  const namedProfile = Option.isSome(named.profile) ? yield* chooseProfile(profiles, named.profile) : Option.none()
  const { address, gateway, key } = chooseAccess(named, readLocalState(), { named: namedProfile, current })
  if (Option.isNone(address) || Option.isNone(gateway) || (needsKey && Option.isNone(key))) {
    if (endedWithoutStopping()) return yield* new CommandError({ message: notRunning, exitCode: 2 })
    return yield* new CommandError({
      message: needsKey
        ? "No API and key are known: run `seatrial login ADDRESS`, set SEATRIAL_ADDRESS and SEATRIAL_API_KEY, or run this where `npm start` runs."
        : "No API is known: run `seatrial login ADDRESS`, set SEATRIAL_ADDRESS, or run this where `npm start` runs.",
      exitCode: 2
    })
  }
  return Access.of({ address: address.value, gateway: gateway.value, key })
})

const client = Effect.gen(function* () {
  const { address, key } = yield* Access
  const options: SeatrialClientOptions = { address, retry, ...(Option.isSome(key) ? { apiKey: key.value } : {}) }
  return yield* SeatrialClient.make(options).pipe(Effect.mapError(({ message }) => new CommandError({ message, exitCode: 2 })))
})

const layerAccess = (needsKey: boolean) => Layer.effect(SeatrialClient, client).pipe(Layer.provideMerge(Layer.effect(Access, access(needsKey))))

/** The API as the holder of a key: see `chooseAccess`. */
export const layerApi = layerAccess(true)

/** The API for what is public. */
export const layerPublicApi = layerAccess(false)
