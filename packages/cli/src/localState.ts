import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Option, Schema } from "effect"

/** Where a system started with `npm start` is found, and the key to it. */
const LocalState = Schema.fromJsonString(
  Schema.Struct({
    address: Schema.String,
    api_key: Schema.String,
    kubeconfig: Schema.String,
    /** The process that wrote it: without it the system is gone, and its address may be somebody else's by now. */
    pid: Schema.FiniteFromString,
    database_url: Schema.optionalKey(Schema.String),
    encryption_key: Schema.optionalKey(Schema.String)
  })
)
export type LocalState = typeof LocalState.Type

/** The state file of the system started in this folder, where there is one. */
export const readLocalState = (folder = process.env.SEATRIAL_STATE ?? ".seatrial"): Option.Option<LocalState> => {
  try {
    const state = Schema.decodeUnknownOption(LocalState)(readFileSync(join(folder, "local.json"), "utf8"))
    if (Option.isSome(state)) process.kill(state.value.pid, 0)
    return state
  } catch {
    return Option.none()
  }
}
