import { Effect } from "effect"
import type { AttackStage } from "./AttackStage.ts"
import { attack } from "./attack.ts"
import { sendRequest } from "./sendRequest.ts"

/** A stream that goes on for hours. */
const endless = ({ model }: AttackStage) => ({
  model,
  stream: true,
  messages: [{ role: "user", content: JSON.stringify({ tokens: 100_000, paceMillis: 500 }) }]
})

/** As many streams as a key may have under way. */
const streams = Array.from({ length: 64 }, (_, index) => index)

attack({
  name: "64 endless streams of one key do not occupy all 64 slots of a public model",
  // The engine has four more places than that.
  settings: { GATEWAY_ENGINE_CONCURRENCY: "60" },
  run: (stage) => Effect.forEach(streams, () => sendRequest(stage, { body: endless(stage) }), { concurrency: "unbounded", discard: true })
})
