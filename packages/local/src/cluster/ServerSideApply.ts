import { Effect } from "effect"
import type { JsonObject } from "./Json.ts"
import type { Kind } from "./Kind.ts"
import { KubeStatus } from "./KubeStatus.ts"
import type { Writer } from "./FieldOwnership.ts"

export const applied = (_kind: Kind, _current: JsonObject, _change: JsonObject, _writer: Writer, _force: boolean): Effect.Effect<{ readonly object: JsonObject }, KubeStatus> =>
  Effect.fail(KubeStatus.methodNotAllowed())
