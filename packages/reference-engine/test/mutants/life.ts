import type { Mutants } from "./Mutant.ts"

const generates = (path: string) => path === "/v1/chat/completions" || path === "/v1/completions"

/** Faults in availability and speed. */
export const lifeMutants: Mutants = {
  abort_ignored: { spoils: "answers continue after the caller left", seams: () => ({ ignoresAborts: true }) },
  abort_leaks: { spoils: "an aborted request keeps its memory", seams: () => ({ leaks: true }) },
  dead_after_50: {
    spoils: "after 50 answers the engine stops answering, and its health check still returns 200",
    seams: () => {
      const count = { answers: 0 }
      return { reception: (path) => (generates(path) && ++count.answers > 50 ? "fail" : "serve") }
    }
  },
  dies_of_bad_request: {
    spoils: "a malformed expression in a schema ends it",
    seams: () => {
      const state = { dead: false }
      return {
        got: (_, body) => {
          state.dead ||= /"pattern"\s*:\s*"[^"]*[([*]/.test(body)
          return body
        },
        reception: () => (state.dead ? "drop" : "serve")
      }
    }
  },
  bad_request_is_500: {
    spoils: "an unreadable request causes HTTP 500",
    seams: () => ({
      got: (_, body) => {
        JSON.parse(body)
        return body
      }
    })
  },
  one_in_30_fails: {
    spoils: "one of 30 answers is an error",
    seams: () => {
      const count = { answers: 0 }
      return { reception: (path) => (generates(path) && ++count.answers % 30 === 0 ? "fail" : "serve") }
    }
  },
  // Not a fault: engines may send several tokens at once.
  two_tokens_a_chunk: { spoils: "nothing: two tokens are sent at once", seams: () => ({ chunkTokens: 2 }) },
  stalls: {
    spoils: "every 5 seconds the engine sends nothing for a second",
    seams: () => {
      const clock = { next: performance.now() + 5_000 }
      return {
        pause: () => {
          if (performance.now() < clock.next) return 0
          clock.next = performance.now() + 6_000
          return 1_000
        }
      }
    }
  }
}
