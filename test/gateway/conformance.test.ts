import { layer } from "@effect/vitest"
import { promisesOfCapabilities } from "./conformance/capabilities.ts"
import { promisesOfChat } from "./conformance/chat.ts"
import { promisesOfFailures } from "./conformance/failures.ts"
import { promisesOfImages } from "./conformance/images.ts"
import { promisesOfMessages } from "./conformance/messages.ts"
import { promisesOfModels } from "./conformance/models.ts"
import { promisesOfRealEngine } from "./conformance/real.ts"
import { promisesOfResponses } from "./conformance/responses.ts"
import { Stage } from "./conformance/Stage.ts"
import { promisesOfValues } from "./conformance/values.ts"

// One stage for all tests. The numbers refer to the list of behaviours that a client may rely on.
layer(Stage.layer, { excludeTestServices: true })("common client libraries", (it) => {
  promisesOfChat(it)
  promisesOfFailures(it)
  promisesOfCapabilities(it)
  promisesOfValues(it)
  promisesOfImages(it)
  promisesOfResponses(it)
  promisesOfMessages(it)
  promisesOfModels(it)
  promisesOfRealEngine(it)
})
