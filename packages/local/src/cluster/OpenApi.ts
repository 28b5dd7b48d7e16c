import type { JsonObject } from "./Json.ts"
import type { Kind } from "./Kind.ts"
export const openApiV2 = (_kinds: ReadonlyArray<Kind>): JsonObject | undefined => undefined
export const openApiV3 = (_path: ReadonlyArray<string>, _kinds: ReadonlyArray<Kind>): JsonObject | undefined => undefined
