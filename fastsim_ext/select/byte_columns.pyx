"""Columns whose figures and totals take one byte: what a change does to all of them, sixteen at a time.

That is so while each column stands at the place of its class in the memo and no class asks for more than
bytes can tell; then the row of the memo becomes the row of the trees. Otherwise everything goes the way of
wider columns, which says the same.
"""

from libc.stdint cimport int8_t, int32_t
from libc.stdlib cimport free
from libc.string cimport memset
from fastsim_ext.select.max_tree_updates cimport climb_put
from fastsim_ext.select.score_columns cimport ScoreColumn, ScoreColumns
from fastsim_ext.select.score_columns import narrows, stretches
from fastsim_ext.scores.frag_grouped cimport View
from fastsim_ext.scores.points cimport points_frag
from fastsim_ext.select.class_demands cimport CLEAR, ROOM, SMALL_UNFIT, hurdles_make, hurdles_row
from fastsim_ext.select.state_memo cimport memo_keep
from fastsim_ext.select.normalised_columns import NormalisedScoreColumns
from fastsim_ext.select.max_tree cimport ROW
from fastsim_ext.state.pod_outcomes cimport NO_NODE
from fastsim_ext.types cimport Node, Typical


def table_of(plan):
    """The kind of ColumnTable that suits a plan; ``plan`` as in a Selector."""
    if stretches(plan):
        return NormalisedScoreColumns
    return ByteScoreColumns if narrows(plan) and plan["figure"][0] >= 0 else ScoreColumns


cdef class ByteScoreColumns(ScoreColumns):
    """The columns of a plan of one term that the memo keeps in a byte."""

    def __dealloc__(self):
        free(self.hurdles.closed)

    cdef int revalue(self, int n, int first, int last) except -1 nogil:
        """Value node ``n`` anew for the columns from ``first`` to before ``last``."""
        cdef const Node* node = &self.nodes.records[n]
        cdef View view
        cdef char* row
        cdef int c
        if self.hurdles.changes != self.needs.changes:
            hurdles_make(&self.hurdles, self.needs)
        if last - first == 1 or not (self.straight and self.memo.coarse and self.hurdles.told):
            return ScoreColumns.revalue(self, n, first, last)
        if not self.nodes.present[n]:
            memset(&self.worth[0], SMALL_UNFIT + NO_NODE, ROOM)
        else:
            row = self.memo.row(self.state(n))
            if hurdles_row(&self.hurdles, last, node, node.slots <= 0, <const int8_t*> row, &self.worth[0]):
                self.learn(n, row, &view)
        for c in range((last + ROW - 1) // ROW):
            climb_put(&self.groves[c], n, &self.worth[c * ROW])
        return 0

    cdef int learn(self, int n, char* row, View* view) except -1 nogil:
        """Work out what the memo does not know, family by family, because they share offers."""
        cdef const Typical* typical = &self.nodes.target.typical
        cdef const ScoreColumn* column
        cdef int32_t c
        cdef int figure, f
        self.nodes.look(&self.nodes.records[n], n, view)
        for f in range(self.n_families):
            view.n_offers = 0
            c = self.families[f].first
            while c >= 0:
                column = &self.columns[c]
                if self.worth[c] == CLEAR:
                    figure = points_frag(&column.pod, column.most_cpu >= 0, typical, view)
                    memo_keep(row, column.lane, True, figure)
                    self.worth[c] = <int8_t> figure
                c = column.after
        return 0
