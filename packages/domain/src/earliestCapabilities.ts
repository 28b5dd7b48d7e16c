import { modelCapabilities, nothingServed } from "./capabilities.ts"
import { shared } from "./requestVocabulary.ts"

const text = shared.filter((field) => field !== "logit_bias" && field !== "response_format")

/** What every revision can do whose capabilities were not kept with it: the first versions served text on these two paths, and nothing else. */
export const earliestCapabilities = modelCapabilities(
  {
    ...nothingServed,
    paths: {
      "/v1/chat/completions": {
        parameters: [...text, "messages", "max_completion_tokens", "logprobs", "top_logprobs", "response_format"],
        responseFormats: ["text"]
      },
      "/v1/completions": { parameters: [...text, "prompt", "echo", "logprobs", "best_of"], responseFormats: [] }
    }
  },
  // Whatever template they had: nothing that it names was served.
  { chat_template: "", commit: "" }
)
