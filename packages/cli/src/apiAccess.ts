import { SeatrialClient, type SeatrialClientOptions } from "@seatrial/client"
import { Config, Context, Effect, Layer, Option, Redacted } from "effect"
import { CommandError } from "./CommandError.ts"
import { endedWithoutStopping, readLocalState } from "./localState.ts"
import { chooseProfile, readProfiles } from "./profiles.ts"

/** The access that the environment sets explicitly. */
export interface ExplicitAccess {
  readonly address: Option.Option<string>
  readonly gateway?: Option.Option<string>
  readonly key: Option.Option<Redacted.Redacted>
}

/** The addresses of the API and the gateway, and a key for both. */
export interface ChosenAccess {
  readonly address: Option.Option<string>
  /** The address of the gateway. The API's address if the gateway has no separate one. */
  readonly gateway: Option.Option<string>
  readonly key: ExplicitAccess["key"]
}

/** The stored addresses and key of an installation. */
interface StoredAccess {
  readonly address: string
  readonly gateway?: string
  readonly api_key: string
}

/**
 * Chooses the API and the key. The order of precedence is: environment variables, the profile that the environment
 * names, the system started in this folder, the current profile. A stored key is only sent to the address that it is
 * stored with.
 */
export const chooseAccess = (
  { address, gateway = Option.none(), key }: ExplicitAccess,
  local: Option.Option<StoredAccess>,
  profile: { readonly selected: Option.Option<StoredAccess>; readonly current: Option.Option<StoredAccess> } = {
    selected: Option.none(),
    current: Option.none()
  }
): ChosenAccess => {
  const known = Option.firstSomeOf([profile.selected, local, profile.current])
  const chosen = Option.orElse(address, () => Option.map(known, (state) => state.address))
  const own = Option.firstSomeOf([profile.selected, local, profile.current].map(Option.filter((state) => Option.contains(chosen, state.address))))
  const ownGateway = Option.flatMap(own, (state) => Option.fromUndefinedOr(state.gateway))
  return {
    address: chosen,
    gateway: Option.firstSomeOf([gateway, ownGateway, chosen]),
    key: Option.orElse(key, () => Option.map(own, (state) => Redacted.make(state.api_key)))
  }
}

/** The addresses and the key of this command. */
export class Access extends Context.Service<Access, { readonly address: string; readonly gateway: string; readonly key: Option.Option<Redacted.Redacted> }>()(
  "seatrial/cli/Access"
) {}

// A user waits at a terminal, so the command reports an unreachable API early. Waiting for a deployment has a separate
// limit.
const retry = { attempts: 4, totalTime: 60_000 }

const notRunning =
  "Seatrial is not running in this folder: it ended unexpectedly. Start it again with `npm start`, which resumes its state, or set SEATRIAL_ADDRESS and SEATRIAL_API_KEY."

const access = Effect.fnUntraced(function* (needsKey: boolean) {
  const environment = yield* Config.all({
    address: Config.String("SEATRIAL_ADDRESS").pipe(Config.option),
    gateway: Config.String("SEATRIAL_GATEWAY_ADDRESS").pipe(Config.option),
    key: Config.Redacted("SEATRIAL_API_KEY").pipe(Config.option),
    profile: Config.String("SEATRIAL_PROFILE").pipe(Config.option)
  })
  const profiles = yield* readProfiles()
  const current = yield* chooseProfile(profiles, Option.none())
  const selected = Option.isSome(environment.profile) ? yield* chooseProfile(profiles, environment.profile) : Option.none()
  const { address, gateway, key } = chooseAccess(environment, readLocalState(), { selected, current })
  if (Option.isNone(address) || Option.isNone(gateway) || (needsKey && Option.isNone(key))) {
    if (endedWithoutStopping()) return yield* new CommandError({ message: notRunning, exitCode: 2 })
    return yield* new CommandError({
      message: needsKey
        ? "No API address and key are configured. Run `seatrial login ADDRESS`, set SEATRIAL_ADDRESS and SEATRIAL_API_KEY, or run this in the folder of `npm start`."
        : "No API address is configured. Run `seatrial login ADDRESS`, set SEATRIAL_ADDRESS, or run this in the folder of `npm start`.",
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

/** The API with a key: see `chooseAccess`. */
export const layerApi = layerAccess(true)

/** The API for public operations. */
export const layerPublicApi = layerAccess(false)
