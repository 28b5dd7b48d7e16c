import { SeatrialClient, type SeatrialClientOptions } from "@seatrial/client"
import { Config, Effect, Layer, Option, Redacted } from "effect"
import { CommandError } from "./CommandError.ts"
import { endedWithoutStopping, type LocalState, readLocalState } from "./localState.ts"

export interface Named {
  readonly address: Option.Option<string>
  readonly key: Option.Option<Redacted.Redacted>
}

/** Which API is asked, and as whom: what is named, else the system started in this folder. */
export const chooseAccess = (
  { address, key }: Named,
  local: Option.Option<LocalState>
): { readonly address: Option.Option<string>; readonly key: Named["key"] } => {
  const chosen = Option.orElse(address, () => Option.map(local, (state) => state.address))
  // The local system's key is for the local system: it goes to no address that somebody names.
  const ownKey = Option.map(
    Option.filter(local, (state) => Option.contains(chosen, state.address)),
    (state) => Redacted.make(state.api_key)
  )
  return { address: chosen, key: Option.orElse(key, () => ownKey) }
}

// Somebody waits at a terminal: what does not answer is told within seconds. Waiting for a run has a patience of its own.
const retry = { attempts: 4, totalTime: 60_000 }

const notRunning =
  "Seatrial is not running in this folder: it ended without being stopped. Start it with `npm start`, which goes on where it was, or set SEATRIAL_ADDRESS and SEATRIAL_API_KEY."

const access = Effect.fnUntraced(function* (needsKey: boolean) {
  const named = yield* Config.all({
    address: Config.String("SEATRIAL_ADDRESS").pipe(Config.option),
    key: Config.Redacted("SEATRIAL_API_KEY").pipe(Config.option)
  })
  const { address, key } = chooseAccess(named, readLocalState())
  if (Option.isNone(address) || (needsKey && Option.isNone(key))) {
    if (endedWithoutStopping()) return yield* new CommandError({ message: notRunning, exitCode: 2 })
    return yield* new CommandError({
      message: needsKey
        ? "No API and key are known: set SEATRIAL_ADDRESS and SEATRIAL_API_KEY, or run this where `npm start` runs."
        : "No API is known: set SEATRIAL_ADDRESS, or run this where `npm start` runs.",
      exitCode: 2
    })
  }
  const options: SeatrialClientOptions = { address: address.value, retry, ...(Option.isSome(key) ? { apiKey: key.value } : {}) }
  return yield* SeatrialClient.make(options).pipe(Effect.mapError(({ message }) => new CommandError({ message, exitCode: 2 })))
})

/** The API as the holder of a key: from `SEATRIAL_ADDRESS` and `SEATRIAL_API_KEY`, else the system started in this folder. */
export const layerApi = Layer.effect(SeatrialClient, access(true))

/** The API for what is public. */
export const layerPublicApi = Layer.effect(SeatrialClient, access(false))
