import type { Mutants } from "./Mutant.ts"

const missing = (gone: string) => () => ({ reception: (path: string) => (path.startsWith(gone) ? ("missing" as const) : ("serve" as const)) })

/** Faults in the paths other than chat and completions. */
export const pathMutants: Mutants = {
  responses_missing: { spoils: "there is no /v1/responses", seams: missing("/v1/responses") },
  responses_unended: {
    spoils: "streams of /v1/responses end without their last event",
    seams: () => ({ sendsEvent: (type) => type !== "response.completed" && type !== "response.incomplete" })
  },
  responses_piece_lost: {
    spoils: "one piece of a streamed response is lost",
    seams: () => {
      const count = { pieces: 0 }
      return { sendsEvent: (type) => type !== "response.output_text.delta" || ++count.pieces % 3 !== 0 }
    }
  },
  messages_missing: { spoils: "there is no /v1/messages", seams: missing("/v1/messages") },
  messages_piece_lost: {
    spoils: "one piece of a streamed message is lost",
    seams: () => {
      const count = { pieces: 0 }
      return { sendsEvent: (type) => type !== "content_block_delta" || ++count.pieces % 3 !== 0 }
    }
  },
  responses_call_lost: {
    spoils: "the arguments of streamed calls of /v1/responses are lost",
    seams: () => ({ sendsEvent: (type) => !type.startsWith("response.function_call_arguments") })
  },
  messages_unended: { spoils: "streams of /v1/messages end without message_stop", seams: () => ({ sendsEvent: (type) => type !== "message_stop" }) },
  message_counted_more: { spoils: "a message's count is one token more than it has", seams: () => ({ counted: (tokens) => tokens + 1 }) }
}
