import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Option, Schema } from "effect"

/** The address and key of a system that was started with `npm start`. */
const LocalState = Schema.fromJsonString(
  Schema.Struct({
    address: Schema.String,
    api_key: Schema.String,
    kubeconfig: Schema.String,
    /** The process that wrote the file. If it has ended, the system is gone and another program may use its address. */
    pid: Schema.FiniteFromString,
    database_url: Schema.optionalKey(Schema.String),
    encryption_key: Schema.optionalKey(Schema.String)
  })
)
export type LocalState = typeof LocalState.Type

const stateFolder = () => process.env.SEATRIAL_STATE ?? ".seatrial"

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const readState = (folder: string): Option.Option<LocalState> => {
  try {
    return Schema.decodeUnknownOption(LocalState)(readFileSync(join(folder, "local.json"), "utf8"))
  } catch {
    return Option.none()
  }
}

/** The state file of the system that runs in this folder, if any. */
export const readLocalState = (folder = stateFolder()): Option.Option<LocalState> => Option.filter(readState(folder), ({ pid }) => isAlive(pid))

/** Whether a system in this folder ended unexpectedly: its state file exists, but its process does not. */
export const endedWithoutStopping = (folder = stateFolder()): boolean => Option.exists(readState(folder), ({ pid }) => !isAlive(pid))
