import { modelCapabilities, nothingServed } from "./capabilities.ts"
import { shared } from "./requestVocabulary.ts"

const text = shared.filter((field) => field !== "logit_bias" && field !== "response_format")

/**
 * The capabilities of revisions that were stored without them: the first versions served text on these two paths and
 * nothing else.
 */
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
  // The template does not matter: the first versions served none of its features.
  { chat_template: "", commit: "" }
)
