import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { namespace, spoolClaim, volumeFolder } from "./clusterObjects.ts"
import { chart } from "./NodeCluster.ts"
import type { ServedReleaseShape } from "./ServedRelease.ts"

const claim = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: spoolClaim, namespace },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } }
}

const values = {
  "gateway.replicas": "1",
  // A claim belongs to one pod: the new one starts when the old one has ended.
  "gateway.strategy.type": "Recreate",
  "gateway.spool.volume.persistentVolumeClaim.claimName": spoolClaim
}

/** Creates the claim, and returns the words with which helm puts the spool of a single gateway there. */
export const spoolWords = ({ apply }: Pick<ServedReleaseShape, "apply">) =>
  Effect.as(
    apply(claim),
    Object.entries(values).flatMap((pair) => ["--set", pair.join("=")])
  )

/** Upgrades the release to one gateway with its spool on the claim, unless it is so already. */
export const putSpoolOnClaim = Effect.fnUntraced(function* (release: ServedReleaseShape) {
  const { helm, kubectl, valuesFile } = release
  const claims = yield* kubectl(["get", "deployment", "seatrial-gateway", "--output=jsonpath={.spec.template.spec.volumes[*].persistentVolumeClaim.claimName}"])
  if (claims === spoolClaim) return
  yield* helm("upgrade", "seatrial", chart, "--values", valuesFile, ...(yield* spoolWords(release)), "--wait", "--timeout", "6m")
})

/** The files of the claim with owner, group and bytes, as this machine sees them. */
export const spoolFiles = () =>
  readdirSync(volumeFolder("spool")).map((name) => {
    const { gid, size, uid } = statSync(join(volumeFolder("spool"), name))
    return { name, owner: `${uid}:${gid}`, size }
  })
