import { vi } from "vitest"

// As many schedules as there are would each wait for ten seconds only for an engine to drain: here the gateways hear of a withdrawal within milliseconds.
vi.mock("../../packages/operator/src/decide/limits.ts", async (load) => ({ ...(await load<object>()), drainTime: 1_000, drainLook: 200, nodePatience: 5_000 }))
