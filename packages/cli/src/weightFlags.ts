import { Commit, RepoName } from "@seatrial/domain"
import { Schema } from "effect"
import { Flag } from "effect/cli"

const Sha256 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u))

/** The flags that name a model's files, and those of its adapter. */
export const weightFlags = {
  repo: Flag.String("repo").pipe(Flag.withDescription("owner/name"), Flag.withSchema(RepoName)),
  commit: Flag.String("commit").pipe(Flag.withDescription("Full commit"), Flag.withSchema(Commit)),
  manifest: Flag.String("manifest").pipe(Flag.withDescription("SHA-256 of the file list that the screening recorded"), Flag.withSchema(Sha256)),
  adapterRepo: Flag.String("adapter-repo").pipe(Flag.withDescription("owner/name of a LoRA adapter for these files"), Flag.withSchema(RepoName), Flag.optional),
  adapterCommit: Flag.String("adapter-commit").pipe(Flag.withDescription("Full commit of the adapter"), Flag.withSchema(Commit), Flag.optional),
  adapterManifest: Flag.String("adapter-manifest").pipe(
    Flag.withDescription("SHA-256 of the adapter's file list that the screening recorded"),
    Flag.withSchema(Sha256),
    Flag.optional
  )
}
