/** What a phase that may last means and what can be done, a sentence a line; undefined for a phase that passes by itself soon. `id` is the deployment's. */
export const waitingAdvice = (phase: string, id: string): string | undefined => {
  const end = `\`seatrial cancel ${id}\` ends it; deployed again with --host-class it uses other GPUs (\`seatrial preview\` lists the classes that fit).`
  if (phase === "waiting") {
    return [
      "waiting: it is not the organization's turn: an older run of the model has to end first, or the organization holds as many GPUs as it may.",
      "It goes on by itself when that run ends, GPUs are given back or an administrator raises the limit.",
      end
    ].join("\n")
  }
  if (phase !== "queued") return undefined
  return [
    "queued: no node has the GPUs of its host class free, others have set them aside, or earlier runs wait for them.",
    "A verified candidate of the model (serve: false) is one that may hold them, for the hold_seconds of its deployment (default 900).",
    "It goes on by itself as soon as there are enough. The operator of the cluster can add GPUs.",
    end
  ].join("\n")
}
