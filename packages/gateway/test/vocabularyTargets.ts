import { type InferencePath, type ModelCapabilities, modelCapabilities, nothingServed, type Runtime, type ServedContract } from "@seatrial/domain"
import { engineFor, engineWire } from "@seatrial/engines"
import { Refusal } from "../src/refusals.ts"
import type { Target } from "../src/vocabulary/Checking.ts"
import { type CheckedRequest, checkRequest } from "../src/vocabulary/checkRequest.ts"
import { parseBody } from "../src/vocabulary/parseBody.ts"
import { limits } from "./pictures.ts"

/** A template that uses everything that a template can use. */
export const ableTemplate = "{% if tools %}<tool_call>{% endif %}{% if enable_thinking is defined %}<think>{% endif %}{{ reasoning_effort }}<|image_pad|>"

const forms = {
  tool_choice: { auto: true, required: true, named: true, none: true },
  parallel_calls: true,
  single_call: true,
  strict_arguments: true,
  tool_results: true
}

/** The contract of an engine that supports everything. */
export const everything: ServedContract = {
  ...(engineFor("vllm")?.served ?? nothingServed),
  toolCalling: forms,
  reasoningControls: { thinking_toggle: true, effort_values: ["low", "high"], token_budget: true }
}

export const capabilitiesOf = (served: ServedContract, chat_template: string | null = ableTemplate): ModelCapabilities =>
  modelCapabilities(served, { chat_template, commit: "c".repeat(40) })

/** The capabilities of a model that also accepts images. */
export const seeing: ModelCapabilities = { ...capabilitiesOf(everything), supports_image_input: true, image_input: limits }

/** `runtime`: the engine whose wire the target has, unless `wire` is given. */
export type TargetOptions = Partial<Target> & { readonly runtime?: Runtime }

export const targetWith = ({ runtime = "reference", ...over }: TargetOptions = {}): Target => ({
  capabilities: capabilitiesOf(everything),
  wire: engineWire(runtime),
  adapted: false,
  maxModelLen: 2_048,
  knowsDeveloper: false,
  sampling: null,
  requestId: "req_1",
  cacheSalt: null,
  ...over
})

/** The outcome for a body, given as text or as a value. */
export const outcomeOf = (body: unknown, endpoint: InferencePath = "/v1/chat/completions", target: Target = targetWith()): CheckedRequest | Refusal => {
  const parsed = parseBody(Buffer.from(typeof body === "string" ? body : JSON.stringify(body)))
  return parsed instanceof Refusal ? parsed : checkRequest(endpoint, parsed, target)
}

export const takenOf = (...given: Parameters<typeof outcomeOf>): CheckedRequest => {
  const outcome = outcomeOf(...given)
  if (outcome instanceof Refusal) throw new Error(`refused: ${outcome.code} at ${outcome.param}: ${outcome.message}`)
  return outcome
}

export const refusalOf = (...given: Parameters<typeof outcomeOf>): Refusal => {
  const outcome = outcomeOf(...given)
  if (outcome instanceof Refusal) return outcome
  throw new Error(`taken: ${outcome.engineBody}`)
}

/** The body that the engine gets. */
export const sentOf = (...given: Parameters<typeof outcomeOf>): unknown => JSON.parse(takenOf(...given).engineBody)
