import { layer } from "@effect/vitest"
import type { Layer } from "effect"
import { describe } from "vitest"
import { applying } from "./applying.ts"
import { commands } from "./commands.ts"
import { customResources } from "./customResources.ts"
import { deletion } from "./deletion.ts"
import { jobs } from "./jobs.ts"
import type { KubeServer } from "./KubeServer.ts"
import { lists } from "./lists.ts"
import { objects } from "./objects.ts"
import { watches } from "./watches.ts"

const subjects = { objects, lists, watches, deletion, applying, customResources, jobs, commands }

/** Holds one API server to everything that the product relies on. */
export const describeContract = (name: string, server: Layer.Layer<KubeServer>) => {
  layer(server, { excludeTestServices: true, timeout: "5 minutes" })(name, (it) => {
    for (const [subject, behaviours] of Object.entries(subjects)) {
      describe.concurrent(subject, () => {
        for (const [promise, behaviour] of Object.entries(behaviours)) it.effect(promise, () => behaviour, 120_000)
      })
    }
  })
}
