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

/** The state file of the system started in this folder, where there is one that runs. */
export const readLocalState = (folder = stateFolder()): Option.Option<LocalState> => Option.filter(readState(folder), ({ pid }) => isAlive(pid))

/** Whether a system was started in this folder and is gone without having stopped: its file is there, its process is not. */
export const endedWithoutStopping = (folder = stateFolder()): boolean => Option.exists(readState(folder), ({ pid }) => !isAlive(pid))
