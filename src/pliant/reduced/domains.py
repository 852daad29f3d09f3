"""x"""
def domain_reduction(scene, own):
    raise NotImplementedError
