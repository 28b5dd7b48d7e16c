/**
 * SQL of what a revision keeps for another commit: its settings without the flags that follow from the commit itself (its architecture, its chat template, its generation
 * configuration), which are chosen anew. Nobody asked for them, and another commit may want others. `revision`: the alias of its row.
 */
const kept = (revision: string): string => `CASE WHEN ${revision}.settings ? 'engine_flags' THEN jsonb_set(${revision}.settings, '{engine_flags}', (
    SELECT coalesce(jsonb_object_agg(flag.key, flag.value), '{}'::jsonb) FROM jsonb_each(${revision}.settings -> 'engine_flags') flag
    WHERE ${revision}.estimate #>> ARRAY['chosen_by', 'engine_flags.' || flag.key] IS DISTINCT FROM 'model'))
  ELSE ${revision}.settings END`

/** SQL of the serving settings of a model that a create leaves out: those that serve, or else those of its last run. `model`: the alias of its row. */
export const previousSettings = (model: string): string => `coalesce(
  (SELECT ${kept("r")} FROM revisions r WHERE r.org_id = ${model}.org_id AND r.id = ${model}.active_revision_id),
  (SELECT coalesce(${kept("r")}, d.serving) FROM deployments d LEFT JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id
    WHERE d.org_id = ${model}.org_id AND d.model_id = ${model}.id ORDER BY d.created_at DESC, d.id DESC LIMIT 1),
  '{}'::jsonb)`

/** SQL of who chose what `previousSettings` keeps: null where the last run has only what its caller sent. */
export const previousChoices = (model: string): string => `coalesce(
  (SELECT coalesce(r.estimate -> 'chosen_by', '{}'::jsonb) FROM revisions r WHERE r.org_id = ${model}.org_id AND r.id = ${model}.active_revision_id),
  (SELECT coalesce(r.estimate -> 'chosen_by', d.kept_choices) FROM deployments d LEFT JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id
    WHERE d.org_id = ${model}.org_id AND d.model_id = ${model}.id ORDER BY d.created_at DESC, d.id DESC LIMIT 1))`
