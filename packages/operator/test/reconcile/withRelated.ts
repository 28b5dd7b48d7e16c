import type { Run } from "@seatrial/store"

const isServing = ({ phase, revision }: Run): boolean => phase === "activated" && revision?.status === "active"

const predecessorOf = ({ endpoints, id, revision }: Run): Run["predecessor"] =>
  revision === null
    ? null
    : {
        run: id,
        commit: revision.facts.commit,
        hostClass: revision.settings.host_class,
        gpus: revision.estimate.gpu_count,
        replicas: endpoints.filter(({ reachable }) => reachable).length
      }

/** The run with what Postgres derives from the other runs of its model. */
export const withRelated = (run: Run, rows: ReadonlyArray<Run>): Run => {
  const others = rows.filter(({ id, model }) => id !== run.id && model === run.model)
  const serving = others.find(isServing)
  const shown = others.find(({ applied }) => applied !== null && applied.current !== null)
  return {
    ...run,
    predecessor: serving === undefined ? run.predecessor : predecessorOf(serving),
    shownBy: isServing(run) ? (shown?.id ?? null) : null
  }
}
