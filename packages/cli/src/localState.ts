import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Option, Schema } from "effect"

/** Where a system started with `npm start` is found, and the key to it. */
const LocalState = Schema.fromJsonString(
  Schema.Struct({
    address: Schema.String,
    api_key: Schema.String,
    kubeconfig: Schema.String,
    database_url: Schema.optionalKey(Schema.String),
    encryption_key: Schema.optionalKey(Schema.String)
  })
)
export type LocalState = typeof LocalState.Type

/** The state file of the system started in this folder, where there is one. */
export const readLocalState = (folder = process.env.SEATRIAL_STATE ?? ".seatrial"): Option.Option<LocalState> => {
  try {
    return Schema.decodeUnknownOption(LocalState)(readFileSync(join(folder, "local.json"), "utf8"))
  } catch {
    return Option.none()
  }
}
