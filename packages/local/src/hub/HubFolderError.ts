import { Data } from "effect"

/** A folder cannot be served as a hub. The message says why and what to do. */
export class HubFolderError extends Data.TaggedError("HubFolderError")<{ readonly message: string }> {}
