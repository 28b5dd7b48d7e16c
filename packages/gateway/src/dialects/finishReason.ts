const endings = new Set(["stop", "length", "tool_calls", "content_filter"])

/** How a caller is told of an engine's ending; null where it is none that an answer can have. */
export const finishReasonOf = (reason: string): string | null => (reason === "repetition" ? "stop" : endings.has(reason) ? reason : null)
