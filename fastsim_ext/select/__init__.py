"""One decision: a node for a pod, by a scan of all nodes or by an index.

In come a pod class and the node table, out goes a node.
Open ``scan`` first: ``indexed`` must choose the same node.

Words of this folder:

====== ================================================================================================
class  pods with equal requests and conditions
column the totals of one class on all nodes, updated where a node changed, under a tree of maxima
family columns whose classes request the same devices
bound  a column for a family and a range of CPU requests: no pod of the range has a larger total
state  what is left on a node of a kind; equal states have one number and one row of the memo
memo   the figures of states by class, shared by runs on equal nodes
lane   the place of a frequent class in every row of the memo
view   a node as the fragmentation score sees it: its typical pods, and what each finds there
offer  one way to place a request on the devices of a view
need   whether a request is for no device, a share of one, or whole ones
====== ================================================================================================
"""
