import type { Dialect } from "./Dialect.ts"
import { OpenAiReader } from "./OpenAiReader.ts"
import { openAiError } from "./openAiError.ts"
import { openAiUsage } from "./openAiUsage.ts"
import { openAiWhole } from "./openAiWhole.ts"

/** Shared by chats and completions. */
const shared = { readWhole: openAiWhole, usageOf: openAiUsage, heartbeat: ": keep-alive\n\n", errorBody: openAiError } satisfies Omit<Dialect, "makeReader">

/** `/v1/chat/completions`. */
export const chat: Dialect = { ...shared, makeReader: (options) => new OpenAiReader(options, true) }

/** `/v1/completions`. */
export const completions: Dialect = { ...shared, makeReader: (options) => new OpenAiReader(options, false) }
